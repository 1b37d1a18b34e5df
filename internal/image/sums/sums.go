// Package sums computes the digests of image files and of their pieces, without reading holes.
//
// The digest of a file is its SHA-256. SHA-256 cannot skip zeros, and takes hours for a sparse disk
// of 10 TiB. So the digest of a file of Large bytes or more is made of those of its pieces: that of
// a piece of zeros is known. Both depend on the content alone, and not on where a file has holes:
// copies can have others. Decision 72 tells why.
package sums

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// Piece is how many bytes a piece has.
const Piece = 4 << 20

// Large is how many bytes a file has, at least, whose digest is made of those of its pieces. A
// variable, so that tests can change it.
var Large int64 = 1 << 40

// ofPieces begins what is hashed for the digest of a large file, so that it is that of no other file.
const ofPieces = "orrery: pieces of 4 MiB\n"

// Of returns the digest of a file. Read is called with the bytes that have been hashed since its
// last call, unless it is nil.
func Of(ctx context.Context, f *os.File, read func(bytes int64)) (string, error) {
	st, err := stat(f)
	if err != nil {
		return "", err
	}
	if st.Size < Large {
		return plain(ctx, f, st, read)
	}
	all := sha256.New()
	io.WriteString(all, ofPieces) //nolint:errcheck // a hash takes all
	err = eachPiece(ctx, f, st, read, func(sum []byte) { all.Write(sum) })
	return hex.EncodeToString(all.Sum(nil)), err
}

// Plain returns the SHA-256 of a file of any size.
func Plain(ctx context.Context, f *os.File, read func(bytes int64)) (string, error) {
	st, err := stat(f)
	if err != nil {
		return "", err
	}
	return plain(ctx, f, st, read)
}

// Pieces returns the SHA-256 of each piece of a file.
func Pieces(ctx context.Context, f *os.File) (sums []string, err error) {
	st, err := stat(f)
	if err != nil {
		return nil, err
	}
	err = eachPiece(ctx, f, st, nil, func(sum []byte) { sums = append(sums, hex.EncodeToString(sum)) })
	return sums, err
}

func stat(f *os.File) (*unix.Stat_t, error) {
	st := &unix.Stat_t{}
	return st, os.NewSyscallError("fstat", unix.Fstat(int(f.Fd()), st))
}

// chunk is how much is read or hashed at once.
const chunk = 256 << 10

var (
	buffers = sync.Pool{New: func() any { return new([chunk]byte) }}
	zeros   [chunk]byte
)

func plain(ctx context.Context, f *os.File, st *unix.Stat_t, read func(int64)) (string, error) {
	h := &hasher{ctx: ctx, from: f, hash: sha256.New(), read: read}
	hashed := int64(0)
	err := eachData(f, st, func(at, end int64) error {
		err := h.zeros(at - hashed)
		if err == nil {
			err = h.data(at, end)
		}
		hashed = end
		return err
	})
	if err == nil {
		err = h.zeros(st.Size - hashed)
	}
	return hex.EncodeToString(h.hash.Sum(nil)), err
}

// eachPiece calls do with the digest of each piece of a file, in order.
func eachPiece(ctx context.Context, f *os.File, st *unix.Stat_t, read func(int64), do func(sum []byte)) error {
	h := &hasher{ctx: ctx, from: f, hash: sha256.New(), read: read}
	next := int64(0) // where the next piece begins
	hole := func(end int64) error {
		for ; next < end; next += Piece {
			sum, err := h.hole(min(Piece, st.Size-next))
			if err != nil {
				return err
			}
			do(sum)
		}
		return nil
	}
	err := eachData(f, st, func(at, end int64) error {
		if err := hole(at / Piece * Piece); err != nil {
			return err
		}
		for ; next < end; next += Piece {
			h.hash.Reset()
			if err := h.data(next, min(next+Piece, st.Size)); err != nil {
				return err
			}
			do(h.hash.Sum(nil))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return hole(st.Size)
}

// eachData calls do with each part of a file that is no hole. A file that takes all its blocks has none.
func eachData(f *os.File, st *unix.Stat_t, do func(at, end int64) error) error {
	if st.Size > 0 && st.Blocks*512 >= st.Size {
		return do(0, st.Size)
	}
	return tree.EachData(int(f.Fd()), st.Size, do)
}

// A hasher hashes parts of a file, and ends with its context.
type hasher struct {
	ctx  context.Context
	from *os.File
	hash hash.Hash
	read func(int64)
}

// data hashes a part of the file.
func (h *hasher) data(at, end int64) error {
	buffer := buffers.Get().(*[chunk]byte)
	defer buffers.Put(buffer)
	for at < end {
		part := buffer[:min(chunk, end-at)]
		n, err := tree.ReadAt(int(h.from.Fd()), part, at)
		if err == nil && n < len(part) {
			err = io.ErrUnexpectedEOF // it has become shorter
		}
		if err != nil {
			return &os.PathError{Op: "read", Path: h.from.Name(), Err: err}
		}
		if err := h.write(part); err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// zeros hashes so many zeros.
func (h *hasher) zeros(n int64) error {
	for n > 0 {
		part := zeros[:min(chunk, n)]
		if err := h.write(part); err != nil {
			return err
		}
		n -= int64(len(part))
	}
	return nil
}

func (h *hasher) write(part []byte) error {
	if h.ctx.Err() != nil {
		return context.Cause(h.ctx)
	}
	h.hash.Write(part)
	h.count(len(part))
	return nil
}

func (h *hasher) count(bytes int) {
	if h.read != nil {
		h.read(int64(bytes))
	}
}

// zero is the digest of a whole piece of zeros. It is computed when it is first asked for.
var zero = sync.OnceValue(func() []byte {
	sum := sha256.New()
	for range Piece / chunk {
		sum.Write(zeros[:])
	}
	return sum.Sum(nil)
})

// Zero returns the digest of a whole piece of zeros.
func Zero() string { return hex.EncodeToString(zero()) }

// hole returns the digest of a piece of zeros.
func (h *hasher) hole(length int64) ([]byte, error) {
	if length == Piece {
		h.count(Piece)
		return zero(), nil
	}
	h.hash.Reset()
	err := h.zeros(length)
	return h.hash.Sum(nil), err
}
