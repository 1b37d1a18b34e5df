package rpc

import "orrery/internal/transport/frame"

// Kinds of frames.
const (
	kindRequest    byte = 'q' // a request; the first frame of each stream
	kindAnswer     byte = 'a' // an answer
	kindStdout     byte = 'o' // bytes: of a command's standard output, of files, of a connection
	kindStderr     byte = 'e' // bytes of a command's standard error
	kindWindowSize byte = 's' // the new size of a terminal
	kindCloseWrite byte = 'w' // one direction of a connection has ended; in a talk: the caller asks the server to stop

	kindMessage byte = 'm' // a message of a talk
)

// Limits of frames.
const (
	maxRequestBytes = 8 << 20  // more than Linux allows for a command's arguments and environment
	maxStatusBytes  = 64 << 10 // for an answer
	maxDataBytes    = 32 << 10
	maxMessageBytes = 64 << 20 // for a message of a talk, such as the whole state of a host
)

var errFrame = frame.ErrProtocol
