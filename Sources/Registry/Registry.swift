// The seams of Registry are written first.
