package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"orrery/test/frames"
)

// sendFrames sends a frame of each kind, or of the named kinds. args are the interface, the MAC and
// IPv4 address of a neighbour to pose as and to address, and names of kinds.
func sendFrames(args []string) error {
	if len(args) < 3 {
		return errors.New("frames INTERFACE MAC ADDRESS [KIND...]")
	}
	me, index, err := self(args[0])
	if err != nil {
		return err
	}
	other, err := party(args[1], args[2])
	if err != nil {
		return err
	}
	kinds := frames.All()
	if names := args[3:]; len(names) > 0 {
		kinds = nil
		for _, name := range names {
			k, ok := frames.Named(name)
			if !ok {
				return fmt.Errorf("no kind of frame is called %q", name)
			}
			kinds = append(kinds, k)
		}
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, k := range kinds {
		to := &unix.SockaddrLinklayer{Ifindex: index, Halen: 6}
		if err := unix.Sendto(fd, k.Frame(me, other), 0, to); err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
	}
	return nil
}

func party(mac, address string) (p frames.Party, err error) {
	if p.MAC, err = net.ParseMAC(mac); err == nil {
		p.IPv4, err = netip.ParseAddr(address)
	}
	return p, err
}

// self returns the MAC, the IPv4 address and the index of an interface.
func self(name string) (frames.Party, int, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return frames.Party{}, 0, err
	}
	addresses, err := link.Addrs()
	if err != nil {
		return frames.Party{}, 0, err
	}
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			return frames.Party{MAC: link.HardwareAddr, IPv4: p.Addr()}, link.Index, nil
		}
	}
	return frames.Party{}, 0, fmt.Errorf("interface %s has no IPv4 address", name)
}

// hearFrames prints the kind of each frame from sendFrames that arrives at an interface. It ends
// after a time of silence, or after ten times as long before the first frame. args are the
// interface, that time, and the MAC and IPv4 address of the sender. It prints "listening" first.
func hearFrames(args []string) error {
	if len(args) != 4 {
		return errors.New("listen INTERFACE DURATION MAC ADDRESS")
	}
	silence, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	me, index, err := self(args[0])
	if err != nil {
		return err
	}
	sender, err := party(args[2], args[3])
	if err != nil {
		return err
	}
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00 // in network byte order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: index}); err != nil {
		return err
	}
	fmt.Println("listening")
	seen, end := map[string]bool{}, time.Now().Add(10*silence) // on a busy machine, the sender starts late
	for b := make([]byte, 1<<16); ; {
		left := unix.NsecToTimeval(int64(max(time.Until(end), time.Millisecond)))
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &left); err != nil {
			return err
		}
		n, _, err := unix.Recvfrom(fd, b, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if name, ok := frames.FindFrom(b[:max(n, 0)], sender, me); ok {
			end = time.Now().Add(silence)
			if !seen[name] {
				fmt.Println(name)
			}
			seen[name] = true
		}
		if time.Now().After(end) {
			return nil
		}
	}
}

// reachServices tries to connect to TCP services, each given as host:port, and prints those that it
// reaches.
func reachServices(args []string) error {
	type answer struct {
		service string
		reached bool
	}
	answers := make(chan answer)
	for _, service := range args {
		go func() {
			c, err := net.DialTimeout("tcp", service, time.Second)
			if err == nil {
				_ = c.Close()
			}
			answers <- answer{service, err == nil}
		}()
	}
	for range args {
		if a := <-answers; a.reached {
			fmt.Fprintln(os.Stdout, a.service)
		}
	}
	return nil
}
