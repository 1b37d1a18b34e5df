// Package rpc carries the calls of a host.Runner over one connection: to a virtual machine, or to
// another host.
//
// At the client's end, Open returns a Client. Its Runner runs commands, writes files and makes
// connections at the other end. There, Serve passes these calls to a host.Runner. A connection is
// anything that carries bytes both ways: the serial port of a virtual machine, or the standard
// streams of a program that ssh(1) has started.
//
// # Layers of the protocol
//
//   - Greeting (greeting.go): the client sends a hello with a nonce, and the server repeats it with the mark
//     of a new session. A serial port is never closed and may hold bytes for an earlier client, so
//     everything before the nonce is skipped. Each end sends its version.
//   - Records (record.go): bytes travel in records of at most 16 KiB that begin and end with the session's
//     mark. If a client is killed in the middle of a record, the next client sends as many empty lines as a
//     record is long before its hello, and the incomplete record is dropped. So half a file followed by
//     something else is never taken for a file.
//   - Streams: yamux splits one connection into many streams with flow control, one for each call. The first
//     frame is the request, as JSON. Others carry output, the new size of a terminal, or the bytes of a file
//     or of a connection. The last is the answer (frame.go). Closing the stream of a call ends what was called.
//     The input of a command has a stream of its own, because the command may not read it.
//   - Talks (talk.go): a call that is not one of a host.Runner is an exchange of JSON messages in both
//     directions. Calls into nodes name the node (Doors).
//
// # Virtual machines
//
// Package guest/agent serves eight ports, orrery.0 to orrery.7. Each serves one process of the host
// at a time, which holds a lock beside the socket (Enter). When that process ends, everything it
// has called is ended. A guest of Xen has six ports, its consoles beyond the first. A console does
// not report that a client has gone, so calls end when nothing has been received from their client
// for about a minute (Endless, decision 36).
//
// The agent sleeps until the kernel wakes it. While a call is running, the client asks for a sign
// of life every 10 s and keeps waiting without one, because a frozen node is not dead. The agent of
// a guest that has rebooted does not know the session and says so, which ends calls that would
// otherwise wait for ever.
//
// # Other hosts
//
// The control host asks for a sign of life every two seconds and gives up after seven without one
// (SetKeepAlive). The remote host gives up when nothing has arrived for about twenty
// (apply/remote/serve.go). In both cases everything that was called is ended, and the site's lock
// is released.
//
// # Hostile peers
//
// The peer is not trusted. It may answer, but it cannot make requests or open streams (framefilter.go).
// The size of answers and of everything before them is limited, and so is the memory that decoding
// takes (package jsonlimit). No call waits longer than its context (decision 61).
package rpc
