// The seams of Ledger are written first.
