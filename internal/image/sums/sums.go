// Package sums computes the digests of image files and of their pieces, without reading holes.
//
// The digest of a file is its SHA-256. SHA-256 cannot skip zeros, and takes hours for a sparse disk
// of 10 TiB. So the digest of a file of at least Large bytes is computed from the digests of its
// pieces: the digest of a piece of zeros is known. Both kinds depend only on the content, not on
// where a file has holes, because copies can have other holes. Decision 72 gives the reasons.
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

// PieceSize is the number of bytes in a piece.
const PieceSize = 4 << 20

// MinPiecewise is the minimum size of a file whose digest is computed from those of its pieces. It is a
// variable, so that tests can change it.
var MinPiecewise int64 = 1 << 40

// piecewisePrefix begins the hashed text of a large file, so that its digest differs from that of any
// other file.
const piecewisePrefix = "orrery: pieces of 4 MiB\n"

// Digest returns the digest of a file. It calls read, unless that is nil, with the number of bytes
// hashed since the last call.
func Digest(ctx context.Context, f *os.File, read func(bytes int64)) (string, error) {
	st, err := stat(f)
	if err != nil {
		return "", err
	}
	if st.Size < MinPiecewise {
		return plain(ctx, f, st, read)
	}
	all := sha256.New()
	io.WriteString(all, piecewisePrefix) //nolint:errcheck // a hash takes all
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

// PieceDigests returns the SHA-256 of each piece of a file.
func PieceDigests(ctx context.Context, f *os.File) (sums []string, err error) {
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
	next := int64(0) // the beginning of the next piece
	hole := func(end int64) error {
		for ; next < end; next += PieceSize {
			sum, err := h.hole(min(PieceSize, st.Size-next))
			if err != nil {
				return err
			}
			do(sum)
		}
		return nil
	}
	err := eachData(f, st, func(at, end int64) error {
		if err := hole(at / PieceSize * PieceSize); err != nil {
			return err
		}
		for ; next < end; next += PieceSize {
			h.hash.Reset()
			if err := h.data(next, min(next+PieceSize, st.Size)); err != nil {
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

// eachData calls do for each part of a file that is not a hole. A file that occupies blocks for its
// whole size has no holes.
func eachData(f *os.File, st *unix.Stat_t, do func(at, end int64) error) error {
	if st.Size > 0 && st.Blocks*512 >= st.Size {
		return do(0, st.Size)
	}
	return tree.EachData(int(f.Fd()), st.Size, do)
}

// A hasher hashes parts of a file until its context ends.
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
			err = io.ErrUnexpectedEOF // the file has been truncated
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

// zeros hashes n zeros.
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

// zeroPiece returns the digest of a whole piece of zeros. It is computed at the first call.
var zeroPiece = sync.OnceValue(func() []byte {
	sum := sha256.New()
	for range PieceSize / chunk {
		sum.Write(zeros[:])
	}
	return sum.Sum(nil)
})

// ZeroPiece returns the digest of a whole piece of zeros.
func ZeroPiece() string { return hex.EncodeToString(zeroPiece()) }

// hole returns the digest of a piece of zeros.
func (h *hasher) hole(length int64) ([]byte, error) {
	if length == PieceSize {
		h.count(PieceSize)
		return zeroPiece(), nil
	}
	h.hash.Reset()
	err := h.zeros(length)
	return h.hash.Sum(nil), err
}
