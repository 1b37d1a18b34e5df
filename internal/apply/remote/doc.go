// Package remote makes another host an apply.Host: the same program runs there as a helper and does what the
// control host requests.
//
// Serve is the helper: it offers what a Machine has to the peer of a connection. Open is the
// control host's end: it returns a Link, whose Host is an apply.Host like that of this machine. All
// decisions are made by the control host. The helper knows no site but by its key and stores
// nothing but what a host has on its disk. It holds the site's lock. When the connection ends, the
// helper releases the lock and stops everything that it was asked to do.
//
// # From below
//
//   - host/reach runs the system's ssh with one shell script as its command (decision 38). The script becomes
//     root by sudo -n and looks for the program by its digest in /var/lib/orrery/helper, to which only root
//     can write. If it is missing, the script reads it from its standard input and verifies it. It then
//     becomes the program (the hidden verb host-helper). The control host caches the digest of its own
//     program (host/reach/memo.go). Runs share one login for a while, which ssh keeps for them (decision 91,
//     host/reach/share.go). Each run starts its own helper through it. So exactly one process has a
//     connection, and everything that was started over the connection ends with it.
//   - Both ends speak the protocol of package rpc over the standard streams, as with the agent of a
//     virtual machine. Each call has its own stream.
//   - This package declares each method of the host's interfaces once (method[Q, A]), beside the call that
//     sends it: its name, the types of request and answer, how large the answer may be, how long it may take,
//     and the function that answers it on the remote host. methods() lists them. To add one, add a method to
//     an interface of package apply, an implementation to apply/local, and its declaration here.
//
// The helper opens its machine with the same here.Machine as the control host, so apply/local does the steps.
// It borrows secrets for the steps that refer to them and holds them in memory only.
//
// Requests and answers are plain data as JSON, and a step is as plan.Encode writes it. A call ends with its
// context; those that answer at once have a timeout (clientcall.go), and the user is told which host is being
// waited for.
package remote
