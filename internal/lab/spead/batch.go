package spead

import (
	"iter"

	"golang.org/x/sys/unix"
)

// A batch is the memory for the messages of one call of recvmmsg.
type batch struct {
	messages []message
	parts    []unix.Iovec
	data     [][]byte
	control  [][]byte
}

const (
	coalescedBytes   = 1 << 16 // bytes of a message that the kernel has coalesced
	messagesPerBatch = 16      // messages
	controlBytes     = 64      // per message: space for UDP_GRO
)

func newBatch(together bool, packet int) *batch {
	size := packet + 1 // so that a longer packet is detected
	if together {
		size = coalescedBytes
	}
	b := &batch{messages: make([]message, messagesPerBatch), parts: make([]unix.Iovec, messagesPerBatch)}
	for i := range b.messages {
		data, control := make([]byte, size), make([]byte, controlBytes)
		touch(data)
		b.data, b.control = append(b.data, data), append(b.control, control)
		b.parts[i].Base = &data[0]
		b.parts[i].SetLen(size)
		b.messages[i].set(&b.parts[i])
		b.messages[i].head.Control = &control[0]
	}
	return b
}

// reset resets the messages for the next call: the kernel overwrites the length of the control
// data.
func (b *batch) reset() {
	for i := range b.messages {
		b.messages[i].head.SetControllen(controlBytes)
	}
}

func (b *batch) receive(fd int) (int, error) {
	b.reset()
	return receiveSome(fd, b.messages)
}

// packets iterates over the packets of the first n messages.
func (b *batch) packets(n int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := range n {
			m := &b.messages[i]
			data := b.data[i][:m.size]
			for size := m.segment(b.control[i]); ; {
				if len(data) <= size {
					if !yield(data) {
						return
					}
					break
				}
				if !yield(data[:size]) {
					return
				}
				data = data[size:]
			}
		}
	}
}
