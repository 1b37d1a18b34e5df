// Command attack does what an attacker would do to Orrery: from inside a node, as a user of the host without rights, as
// a member, or as root of one host among several. Tests build it (need.Attack), put it where the attacker is, and check
// that it fails. Each attack is a file, and a line in the list below.
package main

import (
	"fmt"
	"os"
)

// attacks are all that this program can do, by the name that a test calls them by.
var attacks = map[string]attack{
	"descriptors": {"list the descriptors that the caller left open", listDescriptors},
	"freeze":      {"freeze a process of the node, so that nobody can end it", freezeProcess},
	"namespaces":  {"make namespaces that cost the host memory", makeNamespaces},
	"tap":         {"take a tap from the host, as a QEMU that a guest has taken over", useTap},
}

// An attack is one way of doing harm.
type attack struct {
	tries string // what it tries, in a line
	run   func(args []string) error
}

func main() {
	if len(os.Args) < 2 {
		for name, a := range attacks {
			fmt.Printf("%-16s %s\n", name, a.tries)
		}
		return
	}
	a, ok := attacks[os.Args[1]]
	if !ok {
		fmt.Fprintf(os.Stderr, "attack: no attack is called %q\n", os.Args[1])
		os.Exit(2)
	}
	if err := a.run(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(1)
	}
}
