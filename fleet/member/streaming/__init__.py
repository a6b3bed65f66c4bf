"""Reading members from one event loop: lists and watches of many members, without a thread for each."""
