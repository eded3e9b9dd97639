// The seams of PushServices are written first.
