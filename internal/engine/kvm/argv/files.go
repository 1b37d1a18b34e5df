package argv

import (
	"fmt"
	"strconv"

	"orrery/internal/site/spec"
)

// firstFD is the number of the first open file that QEMU receives.
const firstFD = 3

// Files are the open files that QEMU receives. Each device takes the numbers of its files while its
// options are written.
type Files struct{ names []string }

// Add adds a file and returns the number under which QEMU finds it.
func (f *Files) Add(name string) int {
	f.names = append(f.names, name)
	return firstFD + len(f.names) - 1
}

// Names returns the names of the files in the order of their numbers.
func (f *Files) Names() []string { return f.names }

// The names of the files of every machine.
const (
	Record  = "record"  // receives the console's output
	Console = "console" // listening sockets
	Monitor = "monitor"
	Share   = "share" // the connection to virtiofsd
)

// Agent returns the name of the listening socket of a port to the agent.
func Agent(port int) string { return "agent " + strconv.Itoa(port) }

// Tap returns the name of one queue of a tap.
func Tap(nic spec.NIC, queue int) string { return fmt.Sprintf("tap %s %d", nic.Network, queue) }

// VHost returns the name of the file through which the host's kernel serves one queue of a card.
func VHost(nic spec.NIC, queue int) string { return fmt.Sprintf("vhost %s %d", nic.Network, queue) }
