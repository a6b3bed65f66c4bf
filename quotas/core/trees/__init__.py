"""The quota tree as manifests state it: parsed, validated, and held as frozen values."""
