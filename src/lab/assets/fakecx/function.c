// SPDX-License-Identifier: GPL-2.0
/*
 * The PCI functions: one physical function with SR-IOV, VPD and power management, and its virtual functions.
 * Layout after the PCI Express base specification; there are no BARs, so firmware tools find nothing to talk to.
 */
#include <linux/pci.h>
#include <asm/unaligned.h>
#include "fakecx.h"

#define CAP_PM  0x40
#define CAP_VPD 0x48
#define CAP_EXP 0x60
#define EXT_IOV 0x100
#define SPACE   4096

static u8 space[1 + FAKECX_VIRTUAL_FUNCTIONS][SPACE];
static u8 bus_number;

/* Identifier string, then the read-only fields part number, serial number and checksum. */
static const u8 vpd_head[] = {
	0x82, 0x1d, 0, 'C', 'o', 'n', 'n', 'e', 'c', 't', 'X', '-', '6', ' ', 'm', 'a', 'k', 'e', '-', 'b', 'e', 'l', 'i',
	'e', 'v', 'e', ' ', '(', 'l', 'a', 'b', ')',
	0x90, 0x1c, 0, 'P', 'N', 13, 'M', 'C', 'X', '6', '5', '3', '1', '0', '5', 'A', 'L', 'A', 'B',
	'S', 'N', 5, 'L', 'A', 'B', '0', '1', 'R', 'V', 1,
};
#define VPD_CHECKSUM sizeof(vpd_head)
static u8 vpd[256];

static void put16(u8 *function, int where, u16 value) { put_unaligned_le16(value, function + where); }
static void put32(u8 *function, int where, u32 value) { put_unaligned_le32(value, function + where); }

/* The function that answers, or NULL: a virtual one only once SR-IOV is enabled and counts it. */
static u8 *function_at(struct pci_bus *bus, unsigned int devfn)
{
	u8 *physical = space[0];
	u16 enabled = get_unaligned_le16(physical + EXT_IOV + PCI_SRIOV_NUM_VF);

	if (bus->number != bus_number)
		return NULL;
	if (devfn == 0)
		return physical;
	if (!(physical[EXT_IOV + PCI_SRIOV_CTRL] & PCI_SRIOV_CTRL_VFE))
		return NULL;
	return devfn <= enabled && devfn <= FAKECX_VIRTUAL_FUNCTIONS ? space[devfn] : NULL;
}

static int config_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
	u8 *function = function_at(bus, devfn);
	int i;

	*value = ~0;
	if (!function || where + size > SPACE)
		return PCIBIOS_DEVICE_NOT_FOUND;
	for (*value = 0, i = 0; i < size; i++)
		*value |= (u32)function[where + i] << (8 * i);
	return PCIBIOS_SUCCESSFUL;
}

/* Identity, class, BARs and the fixed part of the SR-IOV capability do not take writes. */
static bool read_only(int where)
{
	int iov = where - EXT_IOV;

	return where < PCI_COMMAND || (where >= PCI_CLASS_REVISION && where < PCI_CACHE_LINE_SIZE) ||
	       (where >= PCI_BASE_ADDRESS_0 && where < PCI_INTERRUPT_LINE) ||
	       (iov >= PCI_SRIOV_VF_OFFSET && iov < PCI_SRIOV_VF_DID + 2) ||
	       (iov >= PCI_SRIOV_BAR && iov < PCI_SRIOV_BAR + 24);
}

/* A write of the VPD address is a read request: the data register answers it. */
static void vpd_read(u8 *function, u32 request)
{
	u16 address = request & 0x7ffc;
	int i;

	for (i = 0; i < 4; i++)
		function[CAP_VPD + PCI_VPD_DATA + i] = address + i < sizeof(vpd) ? vpd[address + i] : 0;
	function[CAP_VPD + PCI_VPD_ADDR + 1] |= PCI_VPD_ADDR_F >> 8;
}

static int config_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	u8 *function = function_at(bus, devfn);
	int i;

	if (!function || where + size > SPACE)
		return PCIBIOS_DEVICE_NOT_FOUND;
	if (read_only(where))
		return PCIBIOS_SUCCESSFUL;
	for (i = 0; i < size; i++)
		function[where + i] = value >> (8 * i);
	if (where == CAP_VPD + PCI_VPD_ADDR && !(value & PCI_VPD_ADDR_F))
		vpd_read(function, value);
	return PCIBIOS_SUCCESSFUL;
}

struct pci_ops fakecx_pci_ops = { .read = config_read, .write = config_write };

static void make_common(u8 *function, u16 vendor, u16 device)
{
	put16(function, PCI_VENDOR_ID, vendor);
	put16(function, PCI_DEVICE_ID, device);
	put16(function, PCI_STATUS, PCI_STATUS_CAP_LIST);
	put16(function, PCI_CLASS_DEVICE, PCI_CLASS_NETWORK_ETHERNET);
	put16(function, PCI_SUBSYSTEM_VENDOR_ID, FAKECX_VENDOR);
	put16(function, PCI_SUBSYSTEM_ID, 0x0008);
	function[PCI_CAPABILITY_LIST] = CAP_EXP;
	function[CAP_EXP] = PCI_CAP_ID_EXP;
	put16(function, CAP_EXP + PCI_EXP_FLAGS, 2 | PCI_EXP_TYPE_ENDPOINT << 4);
	put32(function, CAP_EXP + PCI_EXP_DEVCAP, PCI_EXP_DEVCAP_FLR | PCI_EXP_DEVCAP_EXT_TAG | 2);
	put16(function, CAP_EXP + PCI_EXP_DEVCTL, 2 << 12 | 1 << 5);	/* 512 bytes per read request, 256 of payload */
	put32(function, CAP_EXP + PCI_EXP_LNKCAP, 4 | 16 << 4);		/* 16 GT/s, 16 lanes */
	put16(function, CAP_EXP + PCI_EXP_LNKSTA, 4 | 16 << 4);
	put32(function, CAP_EXP + PCI_EXP_LNKCAP2, 0x1e);
	put16(function, CAP_EXP + PCI_EXP_LNKCTL2, 4);
}

static void make_physical(u8 *function, u16 device)
{
	make_common(function, FAKECX_VENDOR, device);
	function[CAP_EXP + 1] = CAP_VPD;
	function[CAP_VPD] = PCI_CAP_ID_VPD;
	function[CAP_VPD + 1] = CAP_PM;
	function[CAP_PM] = PCI_CAP_ID_PM;
	put16(function, CAP_PM + PCI_PM_PMC, 3);
	put16(function, CAP_PM + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
	put32(function, EXT_IOV, PCI_EXT_CAP_ID_SRIOV | 1 << 16);
	put16(function, EXT_IOV + PCI_SRIOV_INITIAL_VF, FAKECX_VIRTUAL_FUNCTIONS);
	put16(function, EXT_IOV + PCI_SRIOV_TOTAL_VF, FAKECX_VIRTUAL_FUNCTIONS);
	put16(function, EXT_IOV + PCI_SRIOV_VF_OFFSET, 1);
	put16(function, EXT_IOV + PCI_SRIOV_VF_STRIDE, 1);
	put16(function, EXT_IOV + PCI_SRIOV_VF_DID, device + 1);
	put32(function, EXT_IOV + PCI_SRIOV_SUP_PGSIZE, 0x553);
	put32(function, EXT_IOV + PCI_SRIOV_SYS_PGSIZE, 1);
}

void fakecx_make_functions(u8 bus, u16 device_id)
{
	int i;

	bus_number = bus;
	memcpy(vpd, vpd_head, sizeof(vpd_head));
	vpd[VPD_CHECKSUM] = 0;
	for (i = 0; i < VPD_CHECKSUM; i++)
		vpd[VPD_CHECKSUM] -= vpd[i];
	vpd[VPD_CHECKSUM + 1] = 0x78;	/* end tag */
	make_physical(space[0], device_id);
	/* A virtual function reads all ones for its identity; the kernel takes it from the SR-IOV capability. */
	for (i = 1; i <= FAKECX_VIRTUAL_FUNCTIONS; i++)
		make_common(space[i], 0xffff, 0xffff);
}
