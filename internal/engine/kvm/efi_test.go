package kvm

import "encoding/binary"

// efiProgram returns a program that prints a line on the first serial port and halts for ever. It
// is in UEFI's format (PE32+) and runs at any address.
func efiProgram() []byte {
	const header, optional, text = 0x40, 0x58, 0x200
	p := make([]byte, 0x400)
	le := binary.LittleEndian
	copy(p, "MZ")
	le.PutUint32(p[0x3c:], header)
	copy(p[header:], "PE\x00\x00\x64\x86\x01")
	le.PutUint16(p[header+20:], 0xf0)   // of the optional header
	le.PutUint16(p[header+22:], 0x0022) // a program, for any address
	for at, value := range map[int]uint32{
		// code, entry, base, alignments, sizes, EFI application
		0: 0x020b, 4: 0x200, 16: 0x1000, 20: 0x1000, 24: 0x400000, 32: 0x1000, 36: 0x200, 56: 0x2000, 60: 0x200, 68: 10,
		108: 16,
	} {
		le.PutUint32(p[optional+at:], value)
	}
	section := p[optional+0xf0:]
	copy(section, ".text")
	for at, value := range map[int]uint32{8: 0x200, 12: 0x1000, 16: 0x200, 20: text, 36: 0x60000020} {
		le.PutUint32(section[at:], value)
	}
	copy(p[text:], append([]byte{
		0x48, 0x8d, 0x35, 15, 0, 0, 0, // rsi = text
		0x66, 0xba, 0xf8, 0x03, // dx = 0x3f8
		0xac, 0x84, 0xc0, 0x74, 0x03, 0xee, 0xeb, 0xf8, // while (al = *rsi++) out dx, al
		0xf4, 0xeb, 0xfd, // hlt
	}, "started by UEFI\r\n\x00"...))
	return p
}

// efiSystemPartition returns a FAT12 file system in which UEFI finds the program.
func efiSystemPartition(start, sectors int) []byte {
	const sector = 512
	le := binary.LittleEndian
	v := make([]byte, sectors*sector)
	copy(v, "\xeb\x3c\x90orrery  ")
	le.PutUint16(v[11:], sector)
	// sectors in a cluster, sectors before the table, tables, entries in the root, type, sectors of
	// a table
	v[13], v[14], v[16], v[17], v[21], v[22] = 8, 1, 1, 16, 0xf8, 1
	le.PutUint16(v[19:], uint16(sectors))
	v[24], v[26] = 63, 255
	le.PutUint32(v[28:], uint32(start))
	copy(v[36:], "\x80\x00\x29orryNO NAME    FAT12   ")
	v[510], v[511] = 0x55, 0xaa
	copy(v[sector:], "\xf8\xff\xff\xff\xff\xff\xff\x0f") // five clusters, each the last of its file
	entry := func(at int, name string, kind byte, cluster uint16, size int) {
		e := v[at:]
		copy(e, name)
		e[11] = kind
		le.PutUint16(e[26:], cluster)
		le.PutUint32(e[28:], uint32(size))
	}
	cluster := func(n int) int { return (3 + (n-2)*8) * sector }
	const dir, file = 0x10, 0x20
	entry(2*sector, "EFI        ", dir, 2, 0)
	entry(cluster(2), ".          ", dir, 2, 0)
	entry(cluster(2)+32, "..         ", dir, 0, 0)
	entry(cluster(2)+64, "BOOT       ", dir, 3, 0)
	entry(cluster(3), ".          ", dir, 3, 0)
	entry(cluster(3)+32, "..         ", dir, 2, 0)
	program := efiProgram()
	entry(cluster(3)+64, "BOOTX64 EFI", file, 4, len(program))
	copy(v[cluster(4):], program)
	return v
}
