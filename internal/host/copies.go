package host

import (
	"io"
	"slices"
)

// Copies returns so many copies of a stream. It is read as fast as the slowest takes it of those
// who still do, one piece at a time, so it may be of any length; whoever wants no more of it closes
// his copy and holds nobody up. All have to read at the same time.
func Copies(from io.Reader, count int) []*io.PipeReader {
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
