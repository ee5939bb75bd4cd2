"""How much: rows, values and costs, estimated before anything is computed."""
