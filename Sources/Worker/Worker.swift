// The seams of Worker are written first.
