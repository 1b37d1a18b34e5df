package xen

import (
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

var handedFile = regexp.MustCompile(`(?:^|,)fd=([0-9]+)(?:,|$)`)

// serveBackend plays the consoles of QEMU. It listens at sockets that it received open, serves one
// client at a time on each, and copies the data. The guest's output is lost while there is no
// client.
func serveBackend(args []string) error {
	var sockets, rings []int
	ready := 0
	for i, arg := range args[:max(0, len(args)-1)] {
		value := args[i+1]
		found := handedFile.FindStringSubmatch(value)
		if arg != "-chardev" && arg != "-add-fd" {
			continue
		}
		if found == nil {
			return fmt.Errorf("QEMU: it would have to open %s itself", value)
		}
		fd, _ := strconv.Atoi(found[1])
		switch {
		case arg == "-chardev":
			sockets = append(sockets, fd)
		case strings.Contains(value, "set=0"):
			ready = fd
		case strings.Contains(value, "set=1"):
			rings = append(rings, fd)
		}
	}
	if len(sockets) != len(rings) || ready == 0 {
		return fmt.Errorf("QEMU: %d sockets, %d consoles", len(sockets), len(rings))
	}
	var all sync.WaitGroup
	for i, fd := range sockets {
		f := os.NewFile(uintptr(fd), "socket")
		l, err := net.FileListener(f)
		if err != nil {
			return errors.Join(fmt.Errorf("QEMU: socket %d", i), err)
		}
		c := &channel{ring: os.NewFile(uintptr(rings[i]), "ring")}
		all.Go(c.print)
		all.Go(func() { c.attend(l) })
	}
	if _, err := os.NewFile(uintptr(ready), "ready").Write([]byte{1}); err != nil {
		return err
	}
	all.Wait()
	return errors.New("QEMU: its guest is gone")
}

type channel struct {
	ring   *os.File
	mutex  sync.Mutex
	client net.Conn
}

// print sends the guest's output to the client.
func (c *channel) print() {
	b := make([]byte, 4096)
	for {
		n, err := c.ring.Read(b)
		if err != nil {
			return
		}
		c.mutex.Lock()
		to := c.client
		c.mutex.Unlock()
		if to != nil {
			_, _ = to.Write(b[:n])
		}
	}
}

// attend sends the guest what clients type, one client after the other.
func (c *channel) attend(l net.Listener) {
	b := make([]byte, 4096)
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		c.mutex.Lock()
		c.client = conn
		c.mutex.Unlock()
		for {
			n, err := conn.Read(b)
			if err != nil {
				break
			}
			if _, err := c.ring.Write(b[:n]); err != nil {
				break
			}
		}
		c.mutex.Lock()
		c.client = nil
		c.mutex.Unlock()
		_ = conn.Close()
	}
}
