package kvm

import (
	"errors"
	"fmt"
	"os"

	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/nodedir"
	"orrery/internal/network/ends"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// passedFiles are files that QEMU receives open, by the names that its command line uses for them.
type passedFiles map[string]*os.File

// inOrder returns the files in the order of names. It returns an error if a name has no file or a file
// no name.
func (h passedFiles) inOrder(names []string) (all []*os.File, err error) {
	for _, name := range names {
		if h[name] == nil {
			return nil, fmt.Errorf("file %s for QEMU is not open", name)
		}
		all = append(all, h[name])
	}
	if len(h) != len(all) {
		return nil, fmt.Errorf("%d files are open for QEMU, its arguments name %d", len(h), len(all))
	}
	return all, nil
}

func (h passedFiles) close() error {
	var errs []error
	for _, f := range h {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// release closes a file that from now on only QEMU may have open.
func (h passedFiles) release(name string) error {
	f := h[name]
	delete(h, name)
	return f.Close()
}

// add opens a file to pass to QEMU.
func (h passedFiles) add(name string, open func() (*os.File, error)) error {
	f, err := open()
	if err == nil {
		h[name] = f
	}
	return err
}

// createLinks creates the links of a node and opens their ends for QEMU.
func (h passedFiles) createLinks(r *nodedir.Record) error {
	for _, nic := range r.NICs {
		queues, err := ends.OpenTap(nic, r.KindOf(nic), argv.Queues(&r.Node))
		if err != nil {
			return err
		}
		h.addQueues(nic, queues)
	}
	return nil
}

// inheritLinks adds the links of a node that are open in the QEMU that runs its machine.
func (h passedFiles) inheritLinks(qemu int, r *nodedir.Record) error {
	rest, err := tapsOf(qemu)
	if err != nil {
		return err
	}
	defer func() { rest.close() }()
	for _, nic := range r.NICs {
		var its taps
		if its, rest = rest.split(nic.HostIfName); len(its) == 0 {
			return fmt.Errorf("link %s is missing", nic.HostIfName)
		}
		h.addQueues(nic, its)
	}
	return nil
}

// addQueues adds the ends of a link, one for each queue.
func (h passedFiles) addQueues(nic spec.NIC, queues []*os.File) {
	for i, f := range queues {
		h[argv.Tap(nic, i)] = f
	}
}

// vhostNet is the device through which the host's kernel serves network cards.
const vhostNet = "/dev/vhost-net"

// openVHost opens vhostNet once for each queue of the node's cards and reports whether the host's
// kernel will serve them. If the kernel cannot, QEMU serves them, unless the node demands vhost.
func (h passedFiles) openVHost(m machine, n *spec.Node) (vhost bool, err error) {
	if !argv.WantsVHost(n) {
		return false, nil
	}
	for _, nic := range n.NICs {
		for queue := range argv.Queues(n) {
			f, err := os.OpenFile(vhostNet, os.O_RDWR, 0)
			if err != nil {
				if n.VM.VHost == nil && !vhost {
					return false, nil
				}
				return false, problem.New(problem.Unable, "node %s: the host's kernel cannot serve its network cards", n.Name).
					Because(err).
					Try("modprobe vhost_net, or remove vm.vhost")
			}
			h[argv.VHost(nic, queue)], vhost = f, true
		}
	}
	if vhost {
		err = os.WriteFile(m.vhostFile(), nil, 0o600)
	}
	return vhost, err
}
