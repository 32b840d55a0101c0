// SPDX-License-Identifier: GPL-2.0
/* IEEE 802.1Qaz/Qbb settings: ETS, PFC, APP (DSCP map), buffers, rate limits, DCBX mode. Kept, never enforced. */
#include "fakecx.h"

#define BUFFER_TOTAL 524160	/* bytes, as a ConnectX-6 reports */
#define BUFFER_FIRST 262016

static int get_ets(struct net_device *dev, struct ieee_ets *ets)
{
	struct fakecx *cx = netdev_priv(dev);

	*ets = cx->ets;
	ets->ets_cap = IEEE_8021QAZ_MAX_TCS;
	return 0;
}

/* mlx5 refuses a priority without a class and shares that do not sum to 100. */
static int set_ets(struct net_device *dev, struct ieee_ets *ets)
{
	struct fakecx *cx = netdev_priv(dev);
	int i, sum = 0;
	bool any = false;

	for (i = 0; i < IEEE_8021QAZ_MAX_TCS; i++) {
		if (ets->prio_tc[i] >= IEEE_8021QAZ_MAX_TCS)
			return -EINVAL;
		if (ets->tc_tsa[i] == IEEE_8021QAZ_TSA_ETS) {
			sum += ets->tc_tx_bw[i];
			any = true;
		}
	}
	if (any && sum != 100)
		return -EINVAL;
	cx->ets = *ets;
	return 0;
}

static int get_pfc(struct net_device *dev, struct ieee_pfc *pfc)
{
	struct fakecx *cx = netdev_priv(dev);

	*pfc = cx->pfc;
	pfc->pfc_cap = IEEE_8021QAZ_MAX_TCS;
	return 0;
}

static int set_pfc(struct net_device *dev, struct ieee_pfc *pfc)
{
	struct fakecx *cx = netdev_priv(dev);

	cx->pfc.pfc_en = pfc->pfc_en;
	cx->pfc.delay = pfc->delay;
	return 0;
}

static void map_dscp(struct net_device *dev, const struct dcb_app *app, u8 priority)
{
	struct fakecx *cx = netdev_priv(dev);

	if (app->selector == IEEE_8021QAZ_APP_SEL_DSCP && app->protocol < ARRAY_SIZE(cx->priority_of_dscp))
		cx->priority_of_dscp[app->protocol] = priority;
}

static int set_app(struct net_device *dev, struct dcb_app *app)
{
	int error = dcb_ieee_setapp(dev, app);

	if (!error)
		map_dscp(dev, app, app->priority);
	return error;
}

static int delete_app(struct net_device *dev, struct dcb_app *app)
{
	int error = dcb_ieee_delapp(dev, app);

	if (!error)
		map_dscp(dev, app, 0);
	return error;
}

static int get_maxrate(struct net_device *dev, struct ieee_maxrate *rate)
{
	struct fakecx *cx = netdev_priv(dev);

	*rate = cx->rate;
	return 0;
}

static int set_maxrate(struct net_device *dev, struct ieee_maxrate *rate)
{
	struct fakecx *cx = netdev_priv(dev);

	cx->rate = *rate;
	return 0;
}

static int get_buffer(struct net_device *dev, struct dcbnl_buffer *buffer)
{
	struct fakecx *cx = netdev_priv(dev);

	*buffer = cx->buffer;
	return 0;
}

static int set_buffer(struct net_device *dev, struct dcbnl_buffer *buffer)
{
	struct fakecx *cx = netdev_priv(dev);

	cx->buffer = *buffer;
	cx->buffer.total_size = BUFFER_TOTAL;
	return 0;
}

static u8 get_dcbx(struct net_device *dev)
{
	struct fakecx *cx = netdev_priv(dev);

	return cx->dcbx;
}

static u8 set_dcbx(struct net_device *dev, u8 mode)
{
	struct fakecx *cx = netdev_priv(dev);

	if ((mode & DCB_CAP_DCBX_VER_CEE) || !(mode & DCB_CAP_DCBX_VER_IEEE))
		return 1;
	cx->dcbx = mode;
	return 0;
}

static u8 get_capability(struct net_device *dev, int capability, u8 *value)
{
	switch (capability) {
	case DCB_CAP_ATTR_PG_TCS:
	case DCB_CAP_ATTR_PFC_TCS:
		*value = 0x80;	/* eight classes */
		break;
	case DCB_CAP_ATTR_DCBX:
		*value = get_dcbx(dev);
		break;
	default:
		*value = capability == DCB_CAP_ATTR_PFC;
	}
	return 0;
}

static const struct dcbnl_rtnl_ops dcbnl_ops = {
	.ieee_getets = get_ets,
	.ieee_setets = set_ets,
	.ieee_getpfc = get_pfc,
	.ieee_setpfc = set_pfc,
	.ieee_setapp = set_app,
	.ieee_delapp = delete_app,
	.ieee_getmaxrate = get_maxrate,
	.ieee_setmaxrate = set_maxrate,
	.dcbnl_getbuffer = get_buffer,
	.dcbnl_setbuffer = set_buffer,
	.getdcbx = get_dcbx,
	.setdcbx = set_dcbx,
	.getcap = get_capability,
};

void fakecx_dcb_setup(struct net_device *dev)
{
	struct fakecx *cx = netdev_priv(dev);
	int i;

	cx->dcbx = DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE;
	for (i = 0; i < IEEE_8021QAZ_MAX_TCS; i++) {
		cx->ets.prio_tc[i] = i;
		cx->ets.tc_tsa[i] = IEEE_8021QAZ_TSA_ETS;
		cx->ets.tc_tx_bw[i] = i < 4 ? 13 : 12;
	}
	cx->buffer.total_size = BUFFER_TOTAL;
	cx->buffer.buffer_size[0] = BUFFER_FIRST;
	dev->dcbnl_ops = &dcbnl_ops;
}
