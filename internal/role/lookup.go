package role

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"orrery/internal/host"
	"orrery/internal/site"
)

// dnsRetry is the time without an answer after which a DNS query is sent again (a datagram may be lost).
const dnsRetry = time.Second

// lookUp asks a DNS server, from inside the node, for the addresses of a name (RFC 1035). The server must
// answer with at least one.
func lookUp(ctx context.Context, in host.Runner, h *site.HealthCheck) error {
	name, server := h.NameAndServer()
	full, err := dnsmessage.NewName(name + ".")
	if err != nil {
		return err
	}
	conn, err := in.Dial(ctx, "udp", net.JoinHostPort(server, "53"))
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // what was asked has been answered
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	err = queryDNS(ctx, conn, dnsmessage.Question{Name: full, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET})
	if errors.Is(err, errNoAddress) {
		err = queryDNS(ctx, conn, dnsmessage.Question{Name: full, Type: dnsmessage.TypeAAAA, Class: dnsmessage.ClassINET})
	}
	return err
}

var errNoAddress = errors.New("the server knows no address of this name")

// queryDNS sends a question until the server answers it. Answers to other questions are ignored.
func queryDNS(ctx context.Context, conn net.Conn, q dnsmessage.Question) error {
	id := uint16(rand.Uint32())
	query := dnsmessage.Message{Header: dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{q}}
	packet, err := query.Pack()
	if err != nil {
		return err
	}
	resend := time.NewTicker(dnsRetry)
	defer resend.Stop()
	answers, lost := make(chan error, 1), make(chan error, 1)
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				lost <- err
				return
			}
			if answer, ok := parseDNS(buf[:n], id, q); ok {
				answers <- answer
				return
			}
		}
	}()
	for {
		if _, err := conn.Write(packet); err != nil {
			return dnsError(ctx, err)
		}
		select {
		case answer := <-answers:
			return answer
		case err := <-lost:
			return dnsError(ctx, err)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-resend.C:
		}
	}
}

// dnsError returns the reason why there is no answer, which is the context's if that has ended.
func dnsError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// parseDNS returns what an answer says of a question, and whether it is an answer to it.
func parseDNS(packet []byte, id uint16, q dnsmessage.Question) (err error, ok bool) { //nolint:revive,staticcheck // the error is the answer
	var p dnsmessage.Parser
	header, err := p.Start(packet)
	if err != nil || header.ID != id || !header.Response {
		return nil, false
	}
	if asked, err := p.AllQuestions(); err != nil || len(asked) != 1 || asked[0] != q {
		return nil, false
	}
	if header.RCode != dnsmessage.RCodeSuccess && header.RCode != dnsmessage.RCodeNameError {
		return fmt.Errorf("the server answered %s", header.RCode), true
	}
	for {
		record, err := p.AnswerHeader()
		if err != nil {
			return errNoAddress, true
		}
		if record.Type == q.Type {
			return nil, true
		}
		if p.SkipAnswer() != nil {
			return errNoAddress, true
		}
	}
}
