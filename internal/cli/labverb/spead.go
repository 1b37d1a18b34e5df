package labverb

import (
	"io"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/lab/spead"
	"orrery/internal/problem"
)

// newSpead returns the verb by which the lab measures capture.
func newSpead(call *verb.Call) *cobra.Command {
	c := verb.Group("spead", "Send or receive SPEAD heaps over UDP", send(call.In, call.Out), receive(call.In, call.Out))
	c.Hidden = true
	return c
}

// send returns the command that sends heaps.
func send(in io.Reader, out io.Writer) *cobra.Command {
	o := spead.SendOptions{}
	var rate float64
	var length time.Duration
	var heaps int
	var session bool
	c := &cobra.Command{
		Use:     "send ADDRESS:PORT",
		Short:   "Send SPEAD heaps at a rate",
		Example: "  orrery spead send 10.8.67.11:7148",
		Long: `Sends heaps, then the heaps that end the streams, and prints what was sent as a
line of JSON. It counts the bits of packets with their SPEAD headers, without
UDP and IP headers. Bursts of up to 64 KiB are sent on a schedule, at most at
1.25 times the rate. With --session each line of standard input, such as
{"rate": 1e9, "seconds": 0.1}, starts a trial, whose result is a line.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if o.To, err = parseEndpoint(args[0]); err != nil {
				return err
			}
			if rate < 0 || length <= 0 || heaps < 0 {
				return problem.New(problem.Usage, "a rate, duration or number of heaps is negative").
					Try("%s --help", c.CommandPath())
			}
			s, err := spead.Connect(o)
			if err != nil {
				return err
			}
			defer s.Close()
			if session {
				return s.Serve(c.Context(), in, out)
			}
			sent, err := s.SendOnce(c.Context(), heaps, spead.Order{Rate: rate, Seconds: length.Seconds()})
			if err != nil {
				return err
			}
			return spead.Answer(out, sent)
		},
	}
	f := c.Flags()
	f.Float64Var(&rate, "rate", 0, "rate in `bit/s`; 0: as fast as possible")
	f.DurationVar(&length, "duration", time.Second, "how long to send")
	f.IntVar(&heaps, "heaps", 0, "send this `many` heaps, instead of for a duration")
	f.IntVar(&o.Heap, "heap", 256<<10, "`bytes` of data in a heap")
	f.IntVar(&o.Packet, "packet", 1472, "`bytes` of the largest packet")
	f.IntVar(&o.Sockets, "sockets", 1, "`number` of streams, each to a port of its own, counting up")
	f.IntVar(&o.Buffer, "buffer", 4<<20, "`bytes` of each socket's buffer")
	f.BoolVar(&o.GSO, "gso", true, "pass many packets to the kernel at once")
	f.BoolVar(&session, "session", false, "run the trials requested on standard input")
	return c
}

// receive returns the command that receives heaps.
func receive(in io.Reader, out io.Writer) *cobra.Command {
	o := spead.ReceiveOptions{}
	var quiet, silence time.Duration
	var session bool
	c := &cobra.Command{
		Use:     "receive ADDRESS:PORT",
		Short:   "Receive SPEAD heaps",
		Example: "  orrery spead receive 10.8.67.11:7148",
		Long: `Prints a line of JSON when it listens, and one with what it received: after the
heaps that end the streams, after silence, or on SIGTERM. With --session it
does so for each "begin" on standard input, until "end" or the end of the
streams.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if o.At, err = parseEndpoint(args[0]); err != nil {
				return err
			}
			r, err := spead.Listen(o)
			if err != nil {
				return err
			}
			defer r.Close()
			if err := spead.Answer(out, r.Listening()); err != nil {
				return err
			}
			if session {
				return r.Serve(c.Context(), in, out)
			}
			got, err := r.Receive(c.Context(), quiet, silence)
			if err != nil {
				return err
			}
			return spead.Answer(out, got)
		},
	}
	f := c.Flags()
	f.IntVar(&o.Heap, "heap", 256<<10, "`bytes` of memory allocated for heaps in advance")
	f.IntVar(&o.Packet, "packet", 9200, "`bytes` of the largest packet")
	f.IntVar(&o.Sockets, "sockets", 1, "`number` of streams, each at a port of its own, counting up")
	f.IntVar(&o.Buffer, "buffer", 8<<20, "`bytes` of each socket's buffer")
	f.DurationVar(&quiet, "wait", time.Minute, "how long to wait for the first packet")
	f.DurationVar(&silence, "silence", time.Second, "how long to wait for another packet")
	f.BoolVar(&session, "session", false, "receive as requested on standard input")
	return c
}

// parseEndpoint parses an address and a port, both numeric, because nodes may have no resolver.
func parseEndpoint(text string) (netip.AddrPort, error) {
	at, err := netip.ParseAddrPort(text)
	if err != nil || at.Port() == 0 {
		return at, problem.New(problem.Usage, "%q is not an address with a port", text).Try("use an address such as 10.8.67.11:7148")
	}
	return at, nil
}
