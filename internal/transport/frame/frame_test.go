package frame

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// TestFrames: frames written in either way can be read again. A frame that is too long or cut off
// is an error.
func TestFrames(t *testing.T) {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	if err := errors.Join(Put(w, 'a', []byte("o"), nil, []byte("ne")), w.Flush(), Write(&b, 'b', nil),
		WriteJSON(&b, 'c', "two")); err != nil {
		t.Fatal(err)
	}
	sent := b.Bytes()
	for _, buffer := range [][]byte{nil, make([]byte, 100)} {
		in := iotest.OneByteReader(bytes.NewReader(sent))
		for _, want := range []string{"aone", "b", `c"two"`} {
			kind, content, err := Read(in, 5, buffer)
			if got := string(kind) + string(content); err != nil || got != want {
				t.Errorf("%q was read, and not %q (%v)", got, want, err)
			}
		}
		if _, _, err := Read(in, 5, buffer); err != io.EOF {
			t.Errorf("the end is %v", err)
		}
	}
	for n := range len(sent) {
		in := bytes.NewReader(sent[:n])
		var err error
		for err == nil {
			_, _, err = Read(in, 5, nil)
		}
		if clean := n == 0 || n == 8 || n == 13; clean != (err == io.EOF) || !clean && err != io.ErrUnexpectedEOF {
			t.Errorf("cut after %d bytes: %v", n, err)
		}
	}
	if _, _, err := Read(bytes.NewReader(sent), 2, nil); !errors.Is(err, ErrProtocol) {
		t.Errorf("one that is too long: %v", err)
	}
	var text string
	if err := ReadJSON(bytes.NewReader(sent), 'c', 5, &text); !errors.Is(err, ErrProtocol) {
		t.Errorf("one of another kind: %v", err)
	}
	if err := ReadJSON(bytes.NewReader(sent), 'a', 5, &text); !errors.Is(err, ErrProtocol) {
		t.Errorf("one that is no JSON: %v", err)
	}
}

// TestStream: a stream is read as it was written, and its end is reported. Reading continues after
// an error in the middle of a frame.
func TestStream(t *testing.T) {
	var b bytes.Buffer
	text := bytes.Repeat([]byte("0123456789"), maxPartBytes/3)
	if _, err := (&Writer{To: &b, Kind: 'o'}).Write(text); err != nil {
		t.Fatal(err)
	}
	if err := Write(&b, 'w', nil); err != nil {
		t.Fatal(err)
	}
	r := &Reader{From: iotest.TimeoutReader(iotest.HalfReader(&b)), Kind: 'o', End: 'w'}
	var got []byte
	for {
		part, err := io.ReadAll(r)
		got = append(got, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, iotest.ErrTimeout) {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, text) || !r.Ended() {
		t.Errorf("%d of %d bytes came; ended: %v", len(got), len(text), r.Ended())
	}
	for _, other := range [][]byte{Append(nil, 'x'), Append(nil, 'w', []byte("x")), {'o', 255, 255, 255, 255}} {
		if _, err := io.ReadAll(&Reader{From: bytes.NewReader(other), Kind: 'o', End: 'w'}); !errors.Is(err, ErrProtocol) {
			t.Errorf("%q: %v", other, err)
		}
	}
}

// FuzzStream: whatever a peer sends, a reader returns no more than was sent.
func FuzzStream(f *testing.F) {
	f.Add(Append(Append(nil, 'o', []byte("text")), 'w'))
	f.Fuzz(func(t *testing.T, sent []byte) {
		r := &Reader{From: bytes.NewReader(sent), Kind: 'o', End: 'w'}
		if got, _ := io.ReadAll(r); len(got) > len(sent) {
			t.Errorf("%d bytes of %d", len(got), len(sent))
		}
		in := bytes.NewReader(sent)
		for {
			if _, content, err := Read(in, 1<<20, nil); err != nil {
				break
			} else if len(content) > len(sent) {
				t.Errorf("%d bytes of %d", len(content), len(sent))
			}
		}
	})
}
