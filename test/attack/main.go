// Command attack does what an attacker would do to Orrery. It acts from inside a node, as an
// unprivileged user of the host, as a member, or as root of one host among several. Tests build it
// (need.Attack), put it where the attacker is, and check that it fails. Each attack is a file, and
// a line in the list below.
package main

import (
	"fmt"
	"os"
)

// attacks maps the names that tests use to all attacks.
var attacks = map[string]attack{
	"inherit": {"call a program with open files, keys, a class and limits that are none of a node's business",
		inherit},
	"inherited":      {"find what a careless caller has left to this program", inherited},
	"squat":          {"answer in the place of a container's monitor", squat},
	"vsock":          {"meet other nodes by a family of sockets that has no namespaces", vsock},
	"frames":         {"send frames of every kind, as itself and as another", sendFrames},
	"listen":         {"hear which kinds of frames come through", hearFrames},
	"reach":          {"connect to services that should be out of reach", reachServices},
	"suspend":        {"stop a member's run by ^Z, with whatever lock it has", pressKey(ctrlZ)},
	"flow":           {"stop the output of a member's run by ^S", pressKey(ctrlS)},
	"unread":         {"leave the output of a member's run unread", leaveUnread},
	"swallow":        {"let no process be killed that writes to a file", swallow},
	"meddle":         {"do to the processes of a member's run what one process can do to another", meddle},
	"freeze":         {"freeze the control group from which a member calls", freezeRun},
	"set-up":         {"do what a hostile package does as it is set up: reach the host", setUp},
	"freeze-process": {"freeze a process of the node, so that nobody can end it", freezeProcess},
	"namespaces":     {"make namespaces that cost the host memory", makeNamespaces},
	"tap":            {"take a tap from the host, as a QEMU that a guest has taken over", useTap},
}

// An attack is one way of doing harm.
type attack struct {
	tries string // what it tries, in one line
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
