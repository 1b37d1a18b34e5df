package argv

import (
	"fmt"
	"strconv"

	"orrery/internal/site/spec"
)

// first is the number of the first file that QEMU finds open.
const first = 3

// Files are those that QEMU is to find open. Each device takes the numbers of its own as it is written down.
type Files struct{ names []string }

// Take returns the number under which QEMU finds a file.
func (f *Files) Take(name string) int {
	f.names = append(f.names, name)
	return first + len(f.names) - 1
}

// Names returns what the files are that were taken, in the order of their numbers.
func (f *Files) Names() []string { return f.names }

// The names of the files of every machine.
const (
	Record  = "record"  // what its console prints is recorded in
	Console = "console" // listening sockets
	Monitor = "monitor"
	Share   = "share" // the connection to virtiofsd
)

// Agent is the socket at which a port to the agent listens.
func Agent(port int) string { return "agent " + strconv.Itoa(port) }

// Tap is one of the queues of a tap.
func Tap(nic spec.NIC, queue int) string { return fmt.Sprintf("tap %s %d", nic.Network, queue) }

// VHost is what serves one of the queues of a card in the host's kernel.
func VHost(nic spec.NIC, queue int) string { return fmt.Sprintf("vhost %s %d", nic.Network, queue) }
