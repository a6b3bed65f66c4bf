"""What is read out of the pods of a member. Pure."""
