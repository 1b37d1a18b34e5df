package kvm

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/engine/kvm/qmp"
)

// maxPixels limits the size of a picture. It is more than the memory of QEMU's graphics card can
// hold.
const maxPixels = 16 << 20

// takePicture returns a PNG of the screen. The PNG is encoded here and contains only pixels from QEMU,
// which a guest may have taken over. QEMU writes to a file in memory. The kernel charges that
// memory to QEMU, so the node's memory limit applies.
func takePicture(ctx context.Context, q *qmp.Client) ([]byte, error) {
	fd, err := unix.MemfdCreate("picture", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	sheet := os.NewFile(uintptr(fd), "picture")
	defer sheet.Close() //nolint:errcheck // in memory
	if err := dump(ctx, q, sheet); err != nil {
		return nil, err
	}
	picture, err := read(io.NewSectionReader(sheet, 0, math.MaxInt64))
	if err != nil {
		return nil, fmt.Errorf("QEMU did not return a picture: %w", err)
	}
	var out bytes.Buffer
	err = png.Encode(&out, picture)
	return out.Bytes(), err
}

// dump makes QEMU write a picture in PPM, a format that every version of QEMU supports.
func dump(ctx context.Context, q *qmp.Client, sheet *os.File) error {
	// QEMU gets a descriptor for writing only.
	pen, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", sheet.Fd()), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer pen.Close() //nolint:errcheck // QEMU has another
	path, err := q.AddFD(ctx, pen)
	if err != nil {
		return err
	}
	err = q.Do(ctx, "screendump", map[string]string{"filename": path}, nil)
	after, cancel := cleanupContext(ctx)
	defer cancel()
	return errors.Join(err, q.RemoveFD(after, path))
}

// read decodes a PPM picture (P6): a line with the type, one with the size, one with the maximum
// value, then three bytes for each pixel.
func read(from io.Reader) (*image.RGBA, error) {
	in := bufio.NewReader(from)
	var width, height, brightest int
	if _, err := fmt.Fscanf(in, "P6\n%d %d\n%d\n", &width, &height, &brightest); err != nil {
		return nil, err
	}
	if width < 1 || height < 1 || width > maxPixels || height > maxPixels/width || brightest != 255 {
		return nil, fmt.Errorf("it has %d by %d pixels of %d values", width, height, brightest)
	}
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	row := make([]byte, 3*width)
	for y := range height {
		if _, err := io.ReadFull(in, row); err != nil {
			return nil, err
		}
		to := picture.Pix[y*picture.Stride:]
		for x := range width {
			copy(to[4*x:4*x+3], row[3*x:3*x+3])
			to[4*x+3] = 0xff
		}
	}
	return picture, nil
}
