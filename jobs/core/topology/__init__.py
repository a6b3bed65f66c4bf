"""Network and GPU topology: how near to each other the pods of a gang are placed, and what that is worth. Pure."""
