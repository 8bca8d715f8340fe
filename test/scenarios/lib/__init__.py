"""What the scenarios share: processes that end with their test, a fake HTTP server, waiting, reading what the programs
expose."""
