// The seams of FrontEnd are written first.
