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

// MovesOf returns the moves of a node's links that are not on the desired bridges.
func MovesOf(n *spec.Node) []Move {
	var moves []Move
	for _, nic := range n.NICs {
		if n.LinkKind(nic).Bridged && ends.BridgeOf(nic.HostIfName) != nic.Bridge {
			moves = append(moves, Move{Link: nic.HostIfName, Bridge: nic.Bridge})
		}
	}
	return moves
}

// MoveLinks moves links to other bridges, all or none of them, in the given order. Links that are
// already on their bridge are skipped. Nodes that go live, given by the files of their network
// namespaces, then forget the neighbours that have not answered.
//
// All moves are sent to the kernel in one system call that no signal interrupts. A killed process
// has moved all links or none. If the kernel refuses a move, all links are moved back, and only a
// process killed right then leaves some behind. MoveLinks takes no lock, so a switch does not wait
// for other processes that make networks. What those do to their own bridges does not affect these
// links, and if a bridge is removed in between, its moves are refused.
//
// Clients wait from the first move on. So everything possible is prepared before, and the rest is
// done urgently.
func MoveLinks(ctx context.Context, moves []Move, live ...string) error {
	links, err := ends.ListConsistent(netlink.LinkList)
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
	forgetful := openFlusher(live)
	defer forgetful.close()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	var refused error
	_ = host.WithRealtimePriority(func() { // without urgency if that is impossible, which orrery doctor reports
		forgetful.flush() // right before the move, so that few nodes must wait for the second time
		if refused = batch.send(); refused == nil {
			forgetful.flush()
		}
	})
	if refused == nil {
		refused = batch.readAnswers()
	}
	if refused == nil {
		return nil
	}
	p := problem.New(problem.Failed, "move links to other bridges").Because(refused)
	if err := relinkAll(back); err != nil {
		return p.Because(errors.Join(refused, fmt.Errorf("moving them back failed, too: %w", err))).
			Try("run the same command again")
	}
	return p
}

// A relink is a Move with the kernel's link indexes.
type relink struct {
	Move
	link, bridge int // their indexes; bridge is 0 for none
}

// relinks returns the changes for moves, and the changes that undo them, last first.
func relinks(moves []Move, links []netlink.Link) (changes, back []relink, err error) {
	byName, byIndex := map[string]netlink.Link{}, map[int]string{}
	for _, link := range links {
		byName[link.Attrs().Name], byIndex[link.Attrs().Index] = link, link.Attrs().Name
	}
	on := map[string]int{} // link -> bridge to which an earlier move took it
	for _, m := range moves {
		link, bridge := byName[m.Link], byName[m.Bridge]
		if link == nil || !strings.HasPrefix(m.Link, linkPrefix) {
			return nil, nil, problem.New(problem.Failed, "the host has no link %s of a node", m.Link).
				Try("orrery up creates missing links")
		}
		if bridge == nil {
			return nil, nil, problem.New(problem.Failed, "the host has no bridge %s", m.Bridge).
				Try("orrery up creates missing networks")
		}
		if _, ok := ownBridge(bridge); !ok {
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

// A batch is a list of relinks as one message for the kernel, and the socket on which the kernel
// answers.
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
	// The answers are buffered in the socket until the last message is processed.
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

// send sends all relinks to the kernel.
func (b *batch) send() error {
	return unix.Sendto(b.socket.GetFd(), b.message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// relinkAll sends all relinks to the kernel in one system call. It returns the errors of the
// refused ones.
func relinkAll(all []relink) error {
	b, err := newBatch(all)
	if err != nil {
		return err
	}
	defer b.close()
	if err := b.send(); err != nil {
		return err
	}
	return b.readAnswers()
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

// readAnswers reads the kernel's answer to each relink. They have already arrived, since sending waits
// for the work.
func (b *batch) readAnswers() error {
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
