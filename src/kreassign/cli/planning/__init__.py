"""What the planning tasks share: their options, their inputs, and how a plan is shown."""
