package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// sockets serves ports in a directory, as QEMU does: each serves one client at a time.
func sockets(t *testing.T, dir string, ports ...int) {
	t.Helper()
	at, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	for _, port := range ports {
		l, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/%s", at.Fd(), SocketName(port)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_ = Serve(context.Background(), c, host.Local{Name: fmt.Sprint(port)})
				c.Close()
			}
		}()
	}
}

func all() (ports []int) {
	for p := range Ports {
		ports = append(ports, p)
	}
	return ports
}

// TestEnter: as many clients as there are ports can connect at a time, each to its own port. The
// next one waits for a free port. A path may be longer than a socket address.
func TestEnter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	sockets(t, dir, all()...)
	var clients []*Client
	for range Ports {
		c, err := DialAgent(within(t), dir)
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := DialAgent(ctx, dir); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a ninth: %v", err)
	}
	next := make(chan error, 1)
	go func() {
		c, err := DialAgent(within(t), dir)
		if err == nil {
			err = c.Ping(within(t))
			c.Close()
		}
		next <- err
	}()
	clients[3].Close()
	clients[3].Close() // closing twice is allowed
	if err := ended(t, next); err != nil {
		t.Error(err)
	}
	for _, c := range clients {
		c.Close()
	}
}

// TestEnterTaken: waiting too long for a port returns a problem with the place and a remedy.
func TestEnterTaken(t *testing.T) {
	dir := t.TempDir()
	for p := range Ports {
		l, err := host.TryLock(filepath.Join(dir, lockName(p)), host.Exclusive)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Release()
		if err := os.WriteFile(filepath.Join(dir, SocketName(p)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	defer func(old time.Duration) { answerTimeout = old }(answerTimeout)
	answerTimeout = 50 * time.Millisecond
	_, err := DialAgent(within(t), dir)
	if !problem.Is(err, problem.Failed) || !strings.Contains(err.Error(), dir+": all 8 ports") ||
		!strings.Contains(err.Error(), "shells") {
		t.Error(err)
	}
}

// TestEnterEarly: a client waits for a machine that does not exist yet, and greets one that reboots
// again. After a failure, the lock is free.
func TestEnterEarly(t *testing.T) {
	dir := t.TempDir()
	done := make(chan error, 1)
	go func() {
		c, err := DialAgent(within(t), dir)
		if err == nil {
			c.Close()
		}
		done <- err
	}()
	for !host.IsLocked(filepath.Join(dir, lockName(0))) {
		time.Sleep(time.Millisecond)
	}
	sockets(t, dir, 0)
	if err := ended(t, done); err != nil {
		t.Error(err)
	}

	defer func(old time.Duration) { greetTimeout = old }(greetTimeout)
	greetTimeout = 50 * time.Millisecond
	dir = t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, SocketName(0)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // the first greeting is lost
		first, err := l.Accept()
		if err == nil {
			defer first.Close()
		}
		if c, err := l.Accept(); err == nil {
			_ = Serve(context.Background(), c, host.Local{})
		}
	}()
	c, err := DialAgent(within(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if _, err := DialAgent(ctx, t.TempDir()); err == nil ||
		!strings.Contains(err.Error(), "orrery restart --hard NODE reboots it") {
		t.Errorf("nobody has answered: %v", err)
	}
	if _, err := DialAgent(within(t), filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if host.IsLocked(filepath.Join(dir, lockName(0))) {
		t.Error("the port is still taken")
	}
}

// TestEnterMany: more clients than there are ports connect at once.
func TestEnterMany(t *testing.T) {
	defer func(old time.Duration) { answerTimeout = old }(answerTimeout)
	answerTimeout = limit
	dir := t.TempDir()
	sockets(t, dir, all()...)
	var group sync.WaitGroup
	for range 3 * Ports {
		group.Go(func() {
			c, err := DialAgent(within(t), dir)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if err := c.Runner("x").Run(within(t), host.Command{Args: []string{"true"}}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// TestEnterFewer: a machine may have fewer ports than others. Clients do not wait at missing ports.
func TestEnterFewer(t *testing.T) {
	dir := t.TempDir()
	sockets(t, dir, 0, 1)
	for range 2 {
		c, err := DialAgent(within(t), dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	defer func(old time.Duration) { answerTimeout = old }(answerTimeout)
	answerTimeout = 50 * time.Millisecond
	if _, err := DialAgent(within(t), dir); err == nil ||
		!strings.Contains(err.Error(), "all 2 ports to its agent are in use") {
		t.Error(err)
	}
}
