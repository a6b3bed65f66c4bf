"""Members: clients for their APIs, what they are asked, requests passed on, and handlers of what they report."""
