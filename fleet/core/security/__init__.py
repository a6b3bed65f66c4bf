"""Rules of security: scopes of tokens, sign-in of a provider, Pod Security, and the chain and sinks of the audit log. Pure."""
