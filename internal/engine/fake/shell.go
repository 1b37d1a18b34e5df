package fake

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/site/spec"
)

// shell runs the few commands that a node in memory implements. They suffice to check that
// commands, their streams, environment, user and exit status arrive. It is no real shell: "sh -c"
// accepts "echo WORDS", "echo WORDS >&2" and "exit N", joined by ";".
type shell struct {
	ctx            context.Context
	place          inside
	command        host.Command
	stdout, stderr io.Writer
}

// run returns the exit status, or -1 and an error for a command that did not end by itself.
func (s shell) run(args []string) (int, error) {
	if len(args) == 0 {
		return -1, fmt.Errorf("no command")
	}
	switch args[0] {
	case "true":
		return 0, nil
	case "false":
		return 1, nil
	case "echo":
		fmt.Fprintln(s.stdout, strings.Join(args[1:], " "))
		return 0, nil
	case "sleep":
		return s.sleep(args)
	case "cat":
		return s.cat(args[1:])
	case "env":
		for _, e := range append([]string{"PATH=" + host.Path}, s.command.Env...) {
			fmt.Fprintln(s.stdout, e)
		}
		return 0, nil
	case "id":
		return s.id()
	case "ip":
		return s.ip(args)
	case "ping":
		return s.ping(args[len(args)-1])
	case "readlink", "stat":
		return s.stat(args)
	case "/bin/sh":
		if len(args) > 3 && args[3] == "save" {
			return s.keep(args[4:])
		}
	case "rm":
		if len(args) > 3 && args[2] == "--" {
			return 0, s.change(func(files tree, name string) { delete(files, name) }, args[3:]...)
		}
	case "tar":
		if args[1] == "-xpf" {
			return s.unpack()
		}
	case "sh":
		if len(args) == 3 && args[1] == "-c" {
			return s.script(args[2])
		}
	}
	if s.place.engine.Command == nil {
		return 0, nil
	}
	if err := s.place.engine.Command(s.ctx, s.place.ref, s.command); err != nil {
		return 1, err
	}
	return 0, nil
}

func (s shell) script(text string) (int, error) {
	for part := range strings.SplitSeq(text, ";") {
		words := strings.Fields(part)
		switch {
		case len(words) == 2 && words[0] == "exit":
			status, err := strconv.Atoi(words[1])
			return status, err
		case len(words) > 0 && words[0] == "echo" && words[len(words)-1] == ">&2":
			fmt.Fprintln(s.stderr, strings.Join(words[1:len(words)-1], " "))
		case len(words) > 0:
			if status, err := s.run(words); err != nil {
				return status, err
			}
		}
	}
	return 0, nil
}

func (s shell) sleep(args []string) (int, error) {
	seconds, err := strconv.ParseFloat(args[len(args)-1], 64)
	if err != nil {
		return 1, nil
	}
	select {
	case <-time.After(time.Duration(seconds * float64(time.Second))):
		return 0, nil
	case <-s.ctx.Done():
		return -1, context.Cause(s.ctx)
	}
}

func (s shell) cat(files []string) (int, error) {
	if len(files) == 0 {
		if s.command.Stdin == nil {
			return 0, nil
		}
		if _, err := io.Copy(s.stdout, s.command.Stdin); err != nil {
			return 1, err
		}
		return 0, nil
	}
	for _, name := range files {
		content, ok := s.read(name)
		if !ok {
			fmt.Fprintf(s.stderr, "cat: %s: No such file or directory\n", name)
			return 1, nil
		}
		if _, err := s.stdout.Write(content); err != nil {
			return 1, err
		}
	}
	return 0, nil
}

// read returns the content of a file: one that was put, or one that shows a property of the node.
func (s shell) read(name string) ([]byte, bool) {
	e := s.place.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	n, err := s.place.running()
	if err != nil {
		return nil, false
	}
	for range 8 { // the limit for following links
		f, ok := e.get(n, name)
		if !ok {
			break
		}
		if f.Link == "" {
			return f.Content, true
		}
		name = f.Link
	}
	switch name {
	case "/etc/hostname", "/proc/sys/kernel/hostname":
		return []byte(n.spec.Name + "\n"), true
	case "/etc/machine-id":
		return []byte(n.spec.MachineID + "\n"), true
	}
	for _, nic := range n.spec.NICs {
		if name == "/sys/class/net/"+nic.Name+"/address" {
			return []byte(nic.MAC + "\n"), true
		}
	}
	return nil, false
}

// users are the user ids of a node, by name.
var users = map[string]string{"": "0", "root": "0", "nobody": "65534"}

func (s shell) id() (int, error) {
	uid, ok := users[s.command.User]
	if !ok {
		return -1, fmt.Errorf("no user is called %q", s.command.User)
	}
	fmt.Fprintln(s.stdout, uid)
	return 0, nil
}

// stat prints the target of a link, or the mode, user and group of a file as "stat -c '%a %U:%G'"
// does.
func (s shell) stat(args []string) (int, error) {
	e := s.place.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	n, err := s.place.running()
	if err != nil {
		return -1, err
	}
	name := args[len(args)-1]
	f, ok := e.get(n, name)
	switch {
	case !ok || args[0] == "readlink" && f.Link == "":
		return 1, nil
	case args[0] == "readlink":
		fmt.Fprintln(s.stdout, f.Link)
		return 0, nil
	}
	owner := f.Owner
	if owner == "" {
		owner = "root:root"
	}
	fmt.Fprintf(s.stdout, "%o %s\n", f.Mode, owner)
	return 0, nil
}

// ip prints addresses or the default route, much as ip(8) does.
func (s shell) ip(args []string) (int, error) {
	e := s.place.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	n, err := s.place.running()
	if err != nil {
		return -1, err
	}
	for i, nic := range n.spec.NICs {
		switch {
		case slices.Contains(args, "addr") && args[len(args)-1] == nic.Name:
			fmt.Fprintf(s.stdout, "%d: %s    inet %s scope global %s\n", i+2, nic.Name, nic.Address, nic.Name)
		case slices.Contains(args, "route") && nic.Gateway != "":
			fmt.Fprintf(s.stdout, "default via %s dev %s\n", nic.Gateway, nic.Name)
		}
	}
	return 0, nil
}

// ping reaches running nodes on the same bridges.
func (s shell) ping(address string) (int, error) {
	e := s.place.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	n, err := s.place.running()
	if err != nil {
		return -1, err
	}
	for _, own := range n.spec.NICs {
		if own.Gateway == address {
			return 0, nil
		}
	}
	for _, other := range e.nodes {
		for _, its := range other.spec.NICs {
			on := slices.ContainsFunc(n.spec.NICs, func(own spec.NIC) bool { return own.Bridge == its.Bridge })
			if on && other.state == observe.Running && its.Address.Addr().String() == address {
				return 0, nil
			}
		}
	}
	return 1, nil
}
