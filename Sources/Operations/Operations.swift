// The seams of Operations are written first.
