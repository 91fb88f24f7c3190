"""The laws as symbolic expressions (CasADi), and as C that the machine's compiler compiled."""
