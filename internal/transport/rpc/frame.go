package rpc

import "orrery/internal/transport/frame"

// Kinds of frames.
const (
	asks   byte = 'q' // a question; the first frame of each stream
	says   byte = 'a' // an answer
	out    byte = 'o' // bytes: of the output of a command, of files, of a connection
	errs   byte = 'e' // bytes of the other output of a command
	sized  byte = 's' // the new size of a terminal
	ending byte = 'w' // one direction of a connection has come to its end; of a talk: the caller wants no more

	message byte = 'm' // of a talk
)

// Bounds of frames.
const (
	maxRequestBytes = 8 << 20  // more than Linux lets a command have of arguments and environment
	maxStatusBytes  = 64 << 10 // by a far end, of how a call went
	maxDataBytes    = 32 << 10
	maxMessageBytes = 64 << 20 // of a talk: all that is on a host
)

var errFrame = frame.ErrForm
