"""Every figure that README and docs quote, each by one command: `python -m bench` lists them."""
