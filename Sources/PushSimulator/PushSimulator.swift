// The seams of PushSimulator are written first.
