package network

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/network/ends"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// A Move puts the host's end of a node's link onto a bridge.
type Move struct{ Link, Bridge string }

// MovesOf returns the moves of a node's links that are not on the bridges where they shall be.
func MovesOf(n *spec.Node) []Move {
	var moves []Move
	for _, nic := range n.NICs {
		if n.LinkKind(nic).Bridged && ends.BridgeOf(nic.HostEnd) != nic.Bridge {
			moves = append(moves, Move{Link: nic.HostEnd, Bridge: nic.Bridge})
		}
	}
	return moves
}

// MoveLinks moves links to other bridges, all or none of them, in the order given. A link that is
// on its bridge already is left out. Nodes that go live with it, given by the files of their
// network namespaces, then forget whom they have called in vain.
//
// All moves go to the kernel in one system call, which no signal cuts short: a process that is
// killed has moved all of them or none. If the kernel refuses one, all go back where they were, and
// only a process killed right then leaves some behind. No lock is taken, so that a switch waits for
// nobody who makes networks: what others do to bridges of their own does not touch these, and if a
// bridge goes in between, its moves are refused.
//
// Clients wait from the first move on, so all that can be is prepared before, and the rest is done urgently.
func MoveLinks(ctx context.Context, moves []Move, live ...string) error {
	links, err := ends.Whole(netlink.LinkList)
	if err != nil {
		return problem.New(problem.Failed, "list the host's links").Because(err)
	}
	changes, back, err := relinks(moves, links)
	if err != nil || len(changes) == 0 {
		return err
	}
	batch, err := newBatch(changes)
	if err != nil {
		return problem.New(problem.Failed, "prepare to move links").Because(err)
	}
	defer batch.close()
	forgetful := lookInto(live)
	defer forgetful.close()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	var refused error
	_ = host.Urgently(func() { // or as well as it can be: orrery doctor tells
		forgetful.forget() // right before, so that few have to wait for the other time, when all have moved
		if refused = batch.send(); refused == nil {
			forgetful.forget()
		}
	})
	if refused == nil {
		refused = batch.answers()
	}
	if refused == nil {
		return nil
	}
	p := problem.New(problem.Failed, "move links to other bridges").Because(refused)
	if err := relinkAll(back); err != nil {
		return p.Because(errors.Join(refused, fmt.Errorf("and back again: %w", err))).Try("run the same command again")
	}
	return p
}

// A relink is a Move as the kernel wants it.
type relink struct {
	Move
	link, bridge int // their indexes; bridge 0: none
}

// relinks returns what is to be sent for moves, and for undoing them, last first.
func relinks(moves []Move, links []netlink.Link) (changes, back []relink, err error) {
	byName, byIndex := map[string]netlink.Link{}, map[int]string{}
	for _, link := range links {
		byName[link.Attrs().Name], byIndex[link.Attrs().Index] = link, link.Attrs().Name
	}
	on := map[string]int{} // the bridges of links that have moved before
	for _, m := range moves {
		link, bridge := byName[m.Link], byName[m.Bridge]
		if link == nil || !strings.HasPrefix(m.Link, linkPrefix) {
			return nil, nil, problem.New(problem.Failed, "the host has no link %s of a node", m.Link).
				Try("orrery up gives nodes their links")
		}
		if bridge == nil {
			return nil, nil, problem.New(problem.Failed, "the host has no bridge %s", m.Bridge).
				Try("orrery up makes networks that are missing")
		}
		if _, ok := ours(bridge); !ok {
			return nil, nil, problem.New(problem.Failed, "%s is not one of Orrery's bridges", m.Bridge)
		}
		from, moved := on[m.Link]
		if !moved {
			from = link.Attrs().MasterIndex
		}
		to := bridge.Attrs().Index
		if from == to {
			continue
		}
		on[m.Link] = to
		changes = append(changes, relink{m, link.Attrs().Index, to})
		back = append([]relink{{Move{m.Link, byIndex[from]}, link.Attrs().Index, from}}, back...)
	}
	return changes, back, nil
}

// A batch is relinks as the kernel takes them in one system call, and the socket on which it answers.
type batch struct {
	all     []relink
	message []byte
	socket  *nl.NetlinkSocket
}

func newBatch(all []relink) (*batch, error) {
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	b := &batch{all: all, socket: socket}
	for i, t := range all {
		b.message = append(b.message, t.request(uint32(i+1)).Serialize()...)
	}
	// The answers wait in the socket until the last message is done with.
	room := max(2048*len(all), 1<<18)
	err = socket.SetReceiveBufferSize(room, true)
	if err == nil {
		err = unix.SetsockoptInt(socket.GetFd(), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, room)
	}
	if err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *batch) close() { b.socket.Close() }

// send has the kernel do all relinks.
func (b *batch) send() error {
	return unix.Sendto(b.socket.GetFd(), b.message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// relinkAll has the kernel do all relinks in one system call, and returns those that it refused.
func relinkAll(all []relink) error {
	b, err := newBatch(all)
	if err != nil {
		return err
	}
	defer b.close()
	if err := b.send(); err != nil {
		return err
	}
	return b.answers()
}

func (t relink) request(sequence uint32) *nl.NetlinkRequest {
	request := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	request.Seq = sequence
	message := nl.NewIfInfomsg(unix.AF_UNSPEC)
	message.Index = int32(t.link)
	request.AddData(message)
	request.AddData(nl.NewRtAttr(unix.IFLA_MASTER, nl.Uint32Attr(uint32(t.bridge))))
	return request
}

// answers reads the kernel's answer to each relink. They are there already: sending has waited for the work.
func (b *batch) answers() error {
	if err := b.socket.SetReceiveTimeout(&unix.Timeval{Sec: 5}); err != nil {
		return err
	}
	var refused []error
	for answered := 0; answered < len(b.all); {
		messages, _, err := b.socket.Receive()
		if err != nil {
			return fmt.Errorf("after %d of %d answers of the kernel: %w", answered, len(b.all), err)
		}
		for _, m := range messages {
			if m.Header.Type != unix.NLMSG_ERROR || m.Header.Seq == 0 || int(m.Header.Seq) > len(b.all) {
				continue
			}
			answered++
			t := b.all[m.Header.Seq-1]
			if code := int32(nl.NativeEndian().Uint32(m.Data)); code != 0 {
				refused = append(refused, fmt.Errorf("%s to %s: %w", t.Link, t.Bridge, unix.Errno(-code)))
			}
		}
	}
	return errors.Join(refused...)
}
