/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fakecx - a make-believe ConnectX-6 for the lab. It is no hardware and drives none: settings are stored and packets
 * are classified, but no pause frame is ever sent and nothing is shaped.
 */
#ifndef FAKECX_H
#define FAKECX_H

#include <linux/etherdevice.h>
#include <linux/pci.h>
#include <net/dcbnl.h>

#define FAKECX_VENDOR 0x15b3
#define FAKECX_VIRTUAL_FUNCTIONS 8

enum fakecx_direction { FAKECX_RX, FAKECX_TX };
enum fakecx_unit { FAKECX_PACKETS, FAKECX_BYTES };

/* What one netdev remembers. */
struct fakecx {
	struct net_device *lower;	/* carries the frames; NULL on a virtual function */
	struct pci_dev *pdev;
	struct ieee_ets ets;
	struct ieee_pfc pfc;
	struct ieee_maxrate rate;
	struct dcbnl_buffer buffer;
	u8 dcbx;
	u32 rx_ring, tx_ring, channels;
	u32 pause_rx, pause_tx;
	u8 priority_of_dscp[64];
	u64 count[2][IEEE_8021QAZ_MAX_TCS][2];	/* direction, priority, unit */
};

/* function.c: the PCI functions, as bytes of configuration space */
extern struct pci_ops fakecx_pci_ops;
void fakecx_make_functions(u8 bus, u16 device_id);

/* netdev.c */
struct net_device *fakecx_netdev_create(struct pci_dev *pdev, struct net_device *lower, const char *name);
void fakecx_netdev_destroy(struct net_device *dev);

/* ethtool.c, dcb.c */
void fakecx_ethtool_report(const char *firmware, u32 speed);
void fakecx_ethtool_setup(struct net_device *dev);
void fakecx_dcb_setup(struct net_device *dev);

#endif
