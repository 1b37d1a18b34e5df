package role

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/beevik/ntp"

	"orrery/internal/host"
	"orrery/internal/site"
)

// defaultMaxOffset is how far the clock of a server may be from that of the host.
const defaultMaxOffset = time.Second

// askTime asks an NTP server for the time, from inside the node (RFC 5905). The server must be synchronized,
// and its clock no further from that of the host than the check allows.
func askTime(ctx context.Context, in host.Runner, h *site.HealthCheck) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		return errors.New("a query of the time needs a time limit")
	}
	answer, err := ntp.QueryWithOptions(net.JoinHostPort(h.NTP, "123"), ntp.QueryOptions{
		Timeout: time.Until(deadline) + time.Second, // the context ends the query first, with its reason
		Dialer: func(_, server string) (net.Conn, error) {
			conn, err := in.Dial(ctx, "udp", server)
			if err == nil {
				context.AfterFunc(ctx, func() { _ = conn.Close() })
			}
			return conn, err
		},
	})
	if err == nil {
		err = answer.Validate()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return &serverError{err}
	}
	most := h.MaxOffset
	if most == 0 {
		most = defaultMaxOffset
	}
	if off := answer.ClockOffset.Abs(); off > most {
		return fmt.Errorf("its clock is %s from that of the host (at most %s is allowed)", off.Round(time.Microsecond), most)
	}
	return nil
}
