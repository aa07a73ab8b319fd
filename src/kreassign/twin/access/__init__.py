"""How clients get in: listeners, users and permissions."""
