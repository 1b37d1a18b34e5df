package host

import (
	"io"
	"slices"
)

// Tee returns count copies of a stream. The stream is read one piece at a time, at the pace of
// the slowest reader, so it may be of any length. A reader that needs no more closes its copy, and
// then does not delay the others. All copies must be read concurrently.
func Tee(from io.Reader, count int) []*io.PipeReader {
	copies, ends := make([]*io.PipeReader, count), make([]*io.PipeWriter, count)
	for i := range copies {
		copies[i], ends[i] = io.Pipe()
	}
	go func() {
		piece := make([]byte, 64<<10)
		for len(ends) > 0 {
			n, err := from.Read(piece)
			if n > 0 {
				ends = slices.DeleteFunc(ends, func(to *io.PipeWriter) bool {
					_, closed := to.Write(piece[:n])
					return closed != nil
				})
			}
			if err != nil {
				for _, to := range ends {
					_ = to.CloseWithError(err) // it never fails
				}
				return
			}
		}
	}()
	return copies
}
