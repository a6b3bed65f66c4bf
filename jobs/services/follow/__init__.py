"""Follow: applies status reports of members, checks when jobs must fail over, and runs the periodic sweep."""
