"""The commands, one module for each verb or noun. A command parses its arguments, calls the API, and prints."""
