// Package agent runs in a virtual machine and serves requests of clients on the host.
//
// It is the server of package rpc behind the machine's serial ports. It does not listen on a
// network, has no keys, and does nothing without a request. It needs nothing of the machine but the
// root of a Linux system. It is not a security boundary: root in the machine may end the agent, or
// imitate it. The client must not trust it.
package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/transport/rpc"
)

// Serve serves all ports of the machine until ctx ends, including those that are added later.
func Serve(ctx context.Context) error {
	setEnvironment()
	changes, err := listen()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = changes.Close() })
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	served := &ports{at: map[string]bool{}}
	for {
		for _, name := range portDevices("/sys") {
			if served.claim(name) {
				all.Go(func() {
					defer served.release(name)
					servePort(ctx, name)
				})
			}
		}
		if err := changes.next(); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
	}
}

// setEnvironment sets the environment of commands, as in a container.
func setEnvironment() {
	os.Clearenv()
	for name, value := range map[string]string{"PATH": host.Path, "HOME": "/root", "LANG": "C.UTF-8"} {
		_ = os.Setenv(name, value)
	}
	_ = os.Chdir("/")
}

// portDevices returns the device names of the machine's ports for clients, from sysfs.
func portDevices(sys string) (all []string) {
	names, err := filepath.Glob(sys + "/class/virtio-ports/*/name")
	if err != nil {
		return nil
	}
	for _, path := range names {
		if name, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(name), rpc.PortName+".") {
			all = append(all, filepath.Base(filepath.Dir(path)))
		}
	}
	return append(all, consoles(sys)...)
}

// consoles returns the consoles of a guest of Xen except the first one, which is its screen. They
// are also ports for clients. The kernel numbers their devices in the same way, and hvc0 is the
// first one.
func consoles(sys string) (all []string) {
	paths, err := filepath.Glob(sys + "/bus/xen/devices/console-*")
	if err != nil {
		return nil
	}
	for _, path := range paths {
		if number := strings.TrimPrefix(filepath.Base(path), "console-"); number != "0" {
			all = append(all, "hvc"+number)
		}
	}
	return all
}

// servePort serves one port as long as it exists.
func servePort(ctx context.Context, name string) {
	p, err := openPort("/dev/" + name)
	for err == nil && ctx.Err() == nil {
		err = rpc.Serve(ctx, p, guest{host.Local{Name: "here"}})
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, unix.ENODEV) {
		fmt.Fprintf(os.Stderr, "orrery-guest: %s: %v\n", name, err)
	}
}

// ports are the ports that are being served.
type ports struct {
	mutex sync.Mutex
	at    map[string]bool
}

func (p *ports) claim(name string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.at[name] {
		return false
	}
	p.at[name] = true
	return true
}

func (p *ports) release(name string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.at, name)
}
