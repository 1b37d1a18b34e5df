package rpc

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A greeting is a line: magic, version, word, nonce, and an argument of the word. Each line begins
// with an end of line, because bytes of an earlier client may precede it.
const (
	magic       = "orrery-wire"
	wordHello   = "hello"   // sent by the client
	wordWelcome = "welcome" // with the mark of the session
	wordRefused = "refused" // because of the version
	wordOver    = "over"    // the peer's session does not exist any more
)

// maxNoiseBytes is how much may precede the answer to a greeting. An earlier session may leave as
// much as serial ports hold.
const maxNoiseBytes = 16 << 20

var (
	errVersion = errors.New("it uses another version of the protocol")
	errNoise   = errors.New("the guest sends much data but no greeting: it is not Orrery's agent")
)

// maxGreetingBytes is the maximum length of a greeting.
const maxGreetingBytes = 256

type greeting struct{ version, word, nonce, mark string }

func (g greeting) line() []byte {
	return []byte("\n" + strings.TrimRight(strings.Join([]string{magic, g.version, g.word, g.nonce, g.mark}, " "), " ") +
		"\n")
}

// parseGreeting parses a line and reports whether it is a greeting.
func parseGreeting(line []byte) (g greeting, ok bool) {
	if len(line) > maxGreetingBytes || !bytes.HasPrefix(line, []byte(magic+" ")) {
		return g, false
	}
	words := strings.Fields(string(line))
	if len(words) < 4 {
		return g, false
	}
	g = greeting{version: words[1], word: words[2], nonce: words[3]}
	if len(words) > 4 {
		g.mark = words[4]
	}
	return g, true
}

// sendGreeting begins a session. It sends hello with a new nonce and waits for the line that repeats the
// nonce. It first completes any record that an earlier client left incomplete, so that the hello is
// seen.
func sendGreeting(conn io.Writer, from *bufio.Reader) (session [markBytes]byte, err error) {
	nonce := newNonce()
	sent := make(chan error, 1)
	go func() {
		_, err := conn.Write(append(bytes.Repeat([]byte("\n"), maxRecordBytes+recordOverhead),
			greeting{version, wordHello, nonce, ""}.line()...))
		sent <- err
	}()
	for noise := 0; noise < maxNoiseBytes; {
		line, err := from.ReadSlice('\n')
		noise += len(line)
		if g, ok := parseGreeting(line); ok && g.nonce == nonce {
			return g.session()
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			select {
			case bad := <-sent:
				if bad != nil {
					err = bad
				}
			default:
			}
			return session, err
		}
	}
	return session, errNoise
}

// session returns the mark of the session that a greeting begins.
func (g greeting) session() (session [markBytes]byte, err error) {
	if g.version != version {
		return session, fmt.Errorf("%w: %s; this program uses version %s", errVersion, shorten(g.version, 16), version)
	}
	b, err := hex.DecodeString(g.mark)
	if g.word != wordWelcome || err != nil || len(b) != markBytes {
		return session, errFrame
	}
	return [markBytes]byte(b), nil
}

// acceptGreeting waits for a client's hello, answers it and returns the mark of the session. It tells a
// client whose session is unknown that the session is over.
func acceptGreeting(conn io.Writer, from *bufio.Reader) (session [markBytes]byte, err error) {
	told := false
	noise := func() error {
		if told {
			return nil
		}
		told = true
		_, err := conn.Write(greeting{version, wordOver, "-", ""}.line())
		return err
	}
	for {
		line, err := readGreetingLine(from, noise)
		if err != nil {
			return session, err
		}
		g, ok := parseGreeting(line)
		switch {
		case ok && g.word == wordHello && g.version != version:
			if _, err := conn.Write(greeting{version, wordRefused, g.nonce, ""}.line()); err != nil {
				return session, err
			}
		case ok && g.word == wordHello:
			session = newMark()
			_, err := conn.Write(greeting{version, wordWelcome, g.nonce, hex.EncodeToString(session[:])}.line())
			return session, err
		}
	}
}

// readGreetingLine returns a line, or the beginning of a long one. It calls noise as soon as bytes are not a
// greeting. The rest of an old session has no ends of lines, and its client is waiting.
func readGreetingLine(from *bufio.Reader, noise func() error) (line []byte, err error) {
	for {
		b, err := from.ReadByte()
		if err != nil || b == '\n' {
			return line, err
		}
		if len(line) <= maxGreetingBytes {
			line = append(line, b)
		}
		if begins := min(len(line), len(magic)); string(line[:begins]) != magic[:begins] {
			if err := noise(); err != nil {
				return line, err
			}
		}
	}
}

// newMark returns the mark of a new session. The mark contains no end of line. Otherwise the empty
// lines that the next client sends first could complete a record whose last bytes are missing.
func newMark() (session [markBytes]byte) {
	for {
		_, _ = rand.Read(session[:])
		if !bytes.ContainsRune(session[:], '\n') {
			return session
		}
	}
}

func newNonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func shorten(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
