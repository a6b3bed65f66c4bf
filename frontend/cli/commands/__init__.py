"""One module a noun or verb: each parses, calls the API, prints."""
