package login

import (
	"cmp"
	"os"

	"golang.org/x/crypto/ssh"

	"orrery/internal/host"
)

// requestTerminal requests a terminal for a command (RFC 4254, 6.2).
func (s *session) requestTerminal(user *host.Terminal) error {
	_, err := s.SendRequest("pty-req", false, ssh.Marshal(struct {
		Term                         string
		Columns, Rows, Width, Height uint32
		Modes                        string
	}{cmp.Or(os.Getenv("TERM"), "dumb"), uint32(user.Size.Columns), uint32(user.Size.Rows), 0, 0, "\x00"}))
	return err
}

// followSize sets the size of the terminal to that of its user's terminal whenever that changes.
func (s *session) followSize(sizes <-chan host.Size, over <-chan struct{}) {
	for {
		select {
		case to := <-sizes:
			_, _ = s.SendRequest("window-change", false,
				ssh.Marshal(struct{ Columns, Rows, Width, Height uint32 }{uint32(to.Columns), uint32(to.Rows), 0, 0}))
		case <-over:
			return
		}
	}
}
